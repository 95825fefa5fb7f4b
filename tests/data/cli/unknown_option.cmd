occq top --low-occupency
