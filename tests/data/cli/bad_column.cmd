occq top -o kernel,wast
