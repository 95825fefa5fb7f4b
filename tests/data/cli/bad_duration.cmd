occq top --since tomorrow
