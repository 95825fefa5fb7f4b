occq launches --kernel '['
