# Two stages: the first builds what `cargo xtask dist` packs, the second runs it as nobody in particular.
FROM rust:1.95-bookworm AS build
WORKDIR /cuemark
COPY . .
RUN cargo xtask dist

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ffmpeg && rm -rf /var/lib/apt/lists/*
COPY --from=build /cuemark/target/xtask/dist/cuemark/bin/cuemark /usr/local/bin/cuemark
RUN useradd --create-home cuemark
USER cuemark
WORKDIR /home/cuemark
# An index is mounted at /index; a server that others reach wants the token that it prints.
EXPOSE 7878
HEALTHCHECK CMD ["cuemark", "index", "status", "/index"]
ENTRYPOINT ["cuemark"]
CMD ["serve", "/index", "--listen", "0.0.0.0:7878"]
