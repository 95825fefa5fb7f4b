occq import
