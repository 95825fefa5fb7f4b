occq gpus -o gpu,name,cc,sms,shared,slice_of | grep -E "^(GPU|gtx550ti|t4|a100|a100-1g.5gb|h200|b200) "
