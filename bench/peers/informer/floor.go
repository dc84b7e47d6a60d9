package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// readAndDiscard asks for what the informers ask for and drops it: what is left of "wall to synced" when the client costs nothing
// but TLS and reading, that is, the server's own share.
func readAndDiscard(config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	paths := []string{"/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces/kube-public/configmaps"}
	done := make(chan error, len(paths))
	objects := make(chan int, len(paths))
	for _, path := range paths {
		go func() {
			n, err := initialEvents(client, config.Host+path)
			objects <- n
			done <- err
		}()
	}
	total := 0
	for range paths {
		total += <-objects
		err = errors.Join(err, <-done)
	}
	if err == nil {
		fmt.Printf("synced %d objects %d\n", time.Now().UnixNano(), total)
	}
	return err
}

// initialEvents reads a WatchList up to the bookmark that ends it and returns the number of objects before it. A frame of a
// protobuf watch is its length in four bytes, big-endian, and the event.
func initialEvents(client *http.Client, url string) (int, error) {
	const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=300"
	request, err := http.NewRequest(http.MethodGet, url+query, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	body := bufio.NewReaderSize(answer.Body, 64<<10)
	for n := 0; ; n++ {
		var length [4]byte
		if _, err := io.ReadFull(body, length[:]); err != nil {
			return n, err
		}
		size := int(binary.BigEndian.Uint32(length[:]))
		if size > 1024 { // an object, not a bookmark
			if _, err := body.Discard(size); err != nil {
				return n, err
			}
			continue
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(body, frame); err != nil {
			return n, err
		}
		if bytes.Contains(frame, []byte("k8s.io/initial-events-end")) {
			return n, nil
		}
	}
}
