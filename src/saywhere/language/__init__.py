"""Words and phrases of English text."""
