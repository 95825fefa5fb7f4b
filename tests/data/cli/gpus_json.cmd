occq gpus --json | grep -E "\"(t4|h200)\""
