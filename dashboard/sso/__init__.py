"""Single sign-on and second factors. The only room that knows django-allauth, an optional extra:
nothing here is imported where requirements-sso.txt is not installed.
"""
