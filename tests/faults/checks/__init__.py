"""What must hold after a story, one property a file, from the clients' histories and the namespace at the end."""
