"""Programs that print a table; nothing else imports them."""
