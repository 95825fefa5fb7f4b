occq tpo
