# cpack runs this script before it packs: every packed file has the time SOURCE_DATE_EPOCH, if that is set, also a file that is older,
# since files of another checkout have other times (https://reproducible-builds.org/specs/source-date-epoch).
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find "${CPACK_TEMPORARY_DIRECTORY}" -exec touch --no-dereference "--date=@$ENV{SOURCE_DATE_EPOCH}" "{}" +
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
