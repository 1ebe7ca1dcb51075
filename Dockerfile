# One static binary in an empty image. Everything it is made of comes from Debian's packages, so
# a rebuild picks up Debian's fixes; libcurl is built from Debian's own source package, because the
# packaged one brings some thirty libraries for protocols nobody here speaks, and Lua too, because
# it has a few lines of ours (docs/decisions/0007).

FROM debian:bookworm-slim AS curl
RUN if [ -f /etc/apt/sources.list.d/debian.sources ]; then \
      sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources; \
    else \
      sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/source.list; \
    fi \
 && apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      build-essential cmake ninja-build pkg-config dpkg-dev ca-certificates \
      liblua5.4-dev libevent-dev libyaml-dev libre2-dev libssl-dev libzstd-dev \
      libnghttp2-dev zlib1g-dev > /dev/null
# Names are looked up by a thread of libcurl's in glibc, whose static library has the resolvers for
# files and DNS built in. With c-ares each request in flight would cost 75 KB more.
RUN mkdir /curl && cd /curl && apt-get source -qq curl > /dev/null && cd curl-*/ \
 && ./configure --quiet --prefix=/opt/curl --disable-shared --enable-static \
      --with-openssl --with-nghttp2 --with-zlib --without-ca-bundle --with-ca-fallback \
      --without-brotli --without-zstd --without-libidn2 --without-libpsl --without-librtmp \
      --without-libssh2 --without-gssapi --disable-ldap --disable-ldaps --disable-ftp --disable-file \
      --disable-dict --disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
      --disable-smtp --disable-gopher --disable-mqtt --disable-rtsp --disable-manual --disable-ntlm \
      --disable-tls-srp --disable-unix-sockets --disable-cookies --disable-alt-svc --disable-hsts \
      --disable-netrc --disable-doh --disable-mime --disable-dependency-tracking \
 && make -s -j"$(nproc)" -C lib install > /dev/null \
 && make -s -C include install > /dev/null && make -s install-pkgconfigDATA > /dev/null \
 && rm -rf /curl

RUN mkdir /lua && cd /lua && apt-get source -qq lua5.4 > /dev/null && mv lua5.4-*/ source

FROM curl AS build
COPY . /src
RUN PKG_CONFIG_PATH=/opt/curl/lib/pkgconfig cmake -S /src -B /build -G Ninja \
      -DCMAKE_BUILD_TYPE=Release -DMOONLOOP_STATIC=ON -DMOONLOOP_TESTS=OFF -DMOONLOOP_EXTRAS=OFF \
      -DMOONLOOP_DEV=OFF -DMOONLOOP_LUA_SOURCE=/lua/source \
      -DCMAKE_EXE_LINKER_FLAGS=-static > /dev/null \
 && cmake --build /build --target moonloop_cli > /build/log 2>&1 || { cat /build/log; exit 1; } \
 && strip /build/moonloop && /build/moonloop version

# Zones for scripts (docs/decisions/0043), without second copies of them; links stay links.
FROM debian:bookworm-slim AS zones
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tzdata > /dev/null \
 && rm -rf /usr/share/zoneinfo/posix /usr/share/zoneinfo/right /usr/share/zoneinfo/localtime \
      /usr/share/zoneinfo/*.tab /usr/share/zoneinfo/tzdata.zi /usr/share/zoneinfo/leap*

FROM scratch
COPY --from=build /build/moonloop /moonloop
COPY --from=zones /usr/share/zoneinfo /usr/share/zoneinfo
# Whom ctx.http trusts without --http-ca-file. The API server has an authority of its own.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/moonloop"]
CMD ["run", "--help"]
