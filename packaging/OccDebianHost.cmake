# cpack reads this file before it packs: dpkg-shlibdeps looks for the libraries, and for the versions of their symbols, of the
# package's architecture (dpkg-architecture(1), DEB_HOST_ARCH), also where another one builds it.
set(ENV{DEB_HOST_ARCH} "${CPACK_DEBIAN_PACKAGE_ARCHITECTURE}")
