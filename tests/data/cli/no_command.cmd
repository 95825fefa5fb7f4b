occq
