# Two stages: the first builds what `cargo xtask dist` packs, the second runs it as nobody in particular.
FROM rust:1.95-bookworm AS build
# Python brings the linker for old systems, and packs the wheel.
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
# The compiler of the image; rust-toolchain.toml would have another one fetched.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /cuemark
COPY . .
RUN cargo xtask dist

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ffmpeg && rm -rf /var/lib/apt/lists/*
COPY --from=build /cuemark/target/xtask/dist/cuemark/bin/cuemark /usr/local/bin/cuemark
RUN useradd --create-home cuemark
USER cuemark
WORKDIR /home/cuemark
# An index is mounted at /index. A server that others reach wants a token: docker run --env CUEMARK_TOKEN=…
EXPOSE 7878
# Asks the server itself; bash can, so that no client has to be installed.
HEALTHCHECK --start-period=30s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7878 && printf 'GET /api/v1/health HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer %s\\r\\nConnection: close\\r\\n\\r\\n' \"$CUEMARK_TOKEN\" >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["cuemark"]
CMD ["serve", "/index", "--listen", "0.0.0.0:7878"]
