"""Project configuration: settings, addresses, the WSGI application, the command that serves."""
