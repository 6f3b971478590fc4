"""Models, one paper a folder. Each imports torch when it is imported, and only then."""
