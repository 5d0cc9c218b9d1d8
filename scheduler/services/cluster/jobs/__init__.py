"""Jobs of a real cluster where Volcano's controllers do not run: ours make their pods."""
