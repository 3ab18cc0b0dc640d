"""What a conversion log can tell: the fits put to logs whose truth is known."""
