"""What several families are built of: batches, layers, and the modes that networks run in. It knows no family."""
