"""The Studio: record, describe, ground and replay in the browser. The only code that opens a port.

`saywhere studio` starts it; `saywhere.studio.app.create_app` makes the server for other uses. See docs/studio.md.
"""
