occq launches -d h.db --kernel '['
