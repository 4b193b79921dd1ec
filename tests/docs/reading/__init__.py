"""Pages as a reader types them: what a page says to run, where it runs, and whether it printed what the page shows."""
