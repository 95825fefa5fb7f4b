# cpack runs this script before it packs: no packed file is newer than SOURCE_DATE_EPOCH, if that is set
# (https://reproducible-builds.org/specs/source-date-epoch).
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find "${CPACK_TEMPORARY_DIRECTORY}" -newermt "@$ENV{SOURCE_DATE_EPOCH}"
                          -exec touch --no-dereference "--date=@$ENV{SOURCE_DATE_EPOCH}" "{}" +
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
