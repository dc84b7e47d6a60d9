// registry is a registry of images on a free port of 127.0.0.1, by plain HTTP. It prints its address and keeps everything in memory.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	server := http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	fmt.Fprintln(os.Stderr, "registry:", server.Serve(listener))
	os.Exit(1)
}
