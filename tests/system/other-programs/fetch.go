// SPDX-License-Identifier: MIT

// fetch - a client by Go's net/http.  It reads lines of a URL's path and a
// SHA-256 from standard input, fetches each by GET and by HEAD through a few
// kept connections, and says what is not as it should be.
//
//	fetch http://127.0.0.1:8080 <list
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const workers = 8

func check(client *http.Client, url, digest string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	sum := sha256.New()
	length, err := io.Copy(sum, answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != 200 {
		return fmt.Errorf("status %s", answer.Status)
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != digest {
		return fmt.Errorf("%d other bytes", length)
	}
	head, err := client.Head(url)
	if err != nil {
		return err
	}
	head.Body.Close()
	if head.StatusCode != 200 || head.ContentLength != length {
		return fmt.Errorf("HEAD: status %s, length %d, not %d", head.Status,
			head.ContentLength, length)
	}
	return nil
}

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	good, bad := 0, 0
	lines := make(chan string)
	client := &http.Client{
		Transport: &http.Transport{MaxConnsPerHost: workers, MaxIdleConnsPerHost: workers},
		Timeout:   time.Minute,
	}

	for i := 0; i < workers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for line := range lines {
				fields := strings.Fields(line)
				err := check(client, os.Args[1]+fields[0], fields[1])
				lock.Lock()
				if err != nil {
					bad++
					fmt.Printf("%s: %v\n", fields[0], err)
				} else {
					good++
				}
				lock.Unlock()
			}
		}()
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines <- input.Text()
	}
	close(lines)
	group.Wait()
	fmt.Printf("%d good, %d bad\n", good, bad)
	if bad > 0 || input.Err() != nil {
		os.Exit(1)
	}
}
