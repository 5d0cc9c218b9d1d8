"""What people type: forms, query boxes, numbers and choices."""
