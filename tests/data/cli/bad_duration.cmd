occq top --since yesterday
