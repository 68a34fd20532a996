"""What happens to events before they have tables: plans, transformations, and the words of both. Pure rules."""
