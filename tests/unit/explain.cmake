# The verdict: GPU time that adds up, findings, layers.
occ_add_test(test_explain_time SOURCES test_explain_time.c USES occ_explain m)
occ_add_test(test_explain_findings SOURCES test_explain_findings.c USES occ_explain m)
occ_add_test(test_explain_layers SOURCES test_explain_layers.c USES occ_explain m)
target_compile_definitions(test_explain_layers PRIVATE OCC_RANGES_FILE="${PROJECT_SOURCE_DIR}/tests/data/explain/vllm_ranges.tsv")

occ_add_test(test_answer SOURCES test_answer.c USES occ_answer m)
occ_add_test(test_bill SOURCES test_bill.c USES occ_answer m)

# It may be called from anywhere: it must not do I/O or end the process.
occ_add_script_test(explain_is_pure
  COMMAND sh -c "! nm -u $<TARGET_FILE:occ_explain> | grep -Ev ' (occ_|__|v?snprintf)' | grep -E 'U .*(open|read|write|print|put|exit|abort)'")
