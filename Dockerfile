# syntax=docker/dockerfile:1
# readback as one static binary on an image without a shell, as a user without
# rights. It listens on 8080 behind a proxy that has TLS; the configuration can
# change both (docs/operate/deploy.md).
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# With .git: the program prints the version of the tag, or the commit.
COPY . .
ENV GOWORK=off
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w" -o /out/readback ./cmd/readback && mkdir /out/data
RUN go run ./internal/notices -out /out/NOTICE

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/readback /usr/local/bin/readback
COPY --from=build /src/LICENSE /out/NOTICE /usr/share/doc/readback/
# A ledger in a file belongs on a volume here.
COPY --from=build --chown=nonroot:nonroot /out/data /var/lib/readback
WORKDIR /var/lib/readback
USER nonroot:nonroot
ENV READBACK_CONFIG=/etc/readback/readback.yaml \
    READBACK_SERVER_LISTEN=0.0.0.0:8080 \
    READBACK_LOG=json
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=5s CMD ["/usr/local/bin/readback", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/readback"]
CMD ["serve"]
