occq top --since '2024-01-01' --until '2023-01-01'
