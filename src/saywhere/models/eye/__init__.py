"""How the eye (`saywhere.vision.eye`) learns: its features on disk, its objective and its task."""
