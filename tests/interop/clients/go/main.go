// Drives a cluster through colinmarc/hdfs.
//
//	put URI LOCAL REMOTE BLOCK-SIZE   stores a local tree
//	sums URI REMOTE                   reads a tree: one JSON line for each file and directory
//	append URI LOCAL REMOTE…          appends each file of a local directory, by name, to each remote file; opened anew each time
//	flush URI LOCAL REMOTE            appends a local file, makes it visible, says so, and closes when told to
//	truncate URI LENGTH REMOTE
//	rename URI FROM TO
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

const streams = 8

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	uri, err := url.Parse(arguments[1])
	if err != nil {
		return err
	}
	who, err := user.Current()
	if err != nil {
		return err
	}
	client, err := hdfs.NewClient(hdfs.ClientOptions{Addresses: []string{uri.Host}, User: who.Username})
	if err != nil {
		return err
	}
	defer client.Close()
	switch arguments[0] {
	case "put":
		blockSize, err := strconv.ParseInt(arguments[4], 10, 64)
		if err != nil {
			return err
		}
		return put(client, arguments[2], arguments[3], blockSize)
	case "sums":
		return sums(client, arguments[2])
	case "append":
		return appendAll(client, arguments[2], arguments[3:])
	case "flush":
		return flush(client, arguments[2], arguments[3])
	case "truncate":
		length, err := strconv.ParseInt(arguments[2], 10, 64)
		if err != nil {
			return err
		}
		return truncate(client, length, arguments[3])
	case "rename":
		return client.Rename(arguments[2], arguments[3])
	}
	return fmt.Errorf("unknown command %s", arguments[0])
}

func put(client *hdfs.Client, local, remote string, blockSize int64) error {
	defaults, err := client.ServerDefaults()
	if err != nil {
		return err
	}
	var files []func() error
	err = filepath.Walk(local, func(source string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(local, source)
		if err != nil {
			return err
		}
		target := path.Join(remote, filepath.ToSlash(relative))
		if info.IsDir() {
			return client.MkdirAll(target, 0755)
		}
		files = append(files, func() error {
			return putFile(client, source, target, defaults.Replication, blockSize)
		})
		return nil
	})
	if err != nil {
		return err
	}
	return all(files)
}

func putFile(client *hdfs.Client, source, target string, replication int, blockSize int64) error {
	reader, err := os.Open(source)
	if err != nil {
		return err
	}
	defer reader.Close()
	writer, err := client.CreateFile(target, replication, blockSize, 0644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(writer, reader); err != nil {
		writer.Close()
		return fmt.Errorf("%s: %w", target, err)
	}
	return closed(writer)
}

func closed(writer *hdfs.FileWriter) error {
	// This client does not wait for the replicas itself: it says so, and leaves the waiting to its caller.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := writer.Close()
		if !hdfs.IsErrReplicating(err) || time.Now().After(deadline) {
			return err
		}
	}
}

func appendAll(client *hdfs.Client, local string, remotes []string) error {
	pieces, err := os.ReadDir(local)
	if err != nil {
		return err
	}
	for _, remote := range remotes {
		for _, piece := range pieces {
			writer, err := appended(client, filepath.Join(local, piece.Name()), remote)
			if err != nil {
				return err
			}
			if err := closed(writer); err != nil {
				return err
			}
		}
	}
	return nil
}

func appended(client *hdfs.Client, local, remote string) (*hdfs.FileWriter, error) {
	bytes, err := os.ReadFile(local)
	if err != nil {
		return nil, err
	}
	writer, err := client.Append(remote)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(bytes)
	return writer, err
}

func flush(client *hdfs.Client, local, remote string) error {
	writer, err := appended(client, local, remote)
	if err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	fmt.Println("visible")
	if _, err := fmt.Scanln(); err != nil && err != io.EOF && err.Error() != "unexpected newline" {
		return err
	}
	return closed(writer)
}

// truncate waits until the last block has been cut: then the file can be appended to again.
func truncate(client *hdfs.Client, length int64, remote string) error {
	done, err := client.Truncate(remote, length)
	for deadline := time.Now().Add(60 * time.Second); err == nil && !done; time.Sleep(100 * time.Millisecond) {
		var info os.FileInfo
		info, err = client.Stat(remote)
		done = err == nil && info.Size() == length
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is still not of %d bytes", remote, length)
		}
	}
	return err
}

type line struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Sha256 string `json:"sha256"`
}

func sums(client *hdfs.Client, remote string) error {
	var entries []os.FileInfo
	var names []string
	err := client.Walk(remote, func(name string, info os.FileInfo, err error) error {
		if err == nil && name != remote {
			names = append(names, name)
			entries = append(entries, info)
		}
		return err
	})
	if err != nil {
		return err
	}
	lines := make([]line, len(entries))
	var tasks []func() error
	for i := range entries {
		i := i
		tasks = append(tasks, func() (err error) {
			lines[i], err = sum(client, remote, names[i], entries[i])
			return err
		})
	}
	if err := all(tasks); err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	for _, found := range lines {
		if err := encoder.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func sum(client *hdfs.Client, remote, name string, info os.FileInfo) (line, error) {
	relative := strings.TrimPrefix(strings.TrimPrefix(name, remote), "/")
	if info.IsDir() {
		return line{Path: relative + "/"}, nil
	}
	reader, err := client.Open(name)
	if err != nil {
		return line{}, err
	}
	defer reader.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, reader)
	if err == nil && size != info.Size() {
		err = fmt.Errorf("%s: read %d bytes of %d", name, size, info.Size())
	}
	return line{relative, size, hex.EncodeToString(digest.Sum(nil))}, err
}

// all runs the tasks, a few at a time, and returns the first error.
func all(tasks []func() error) error {
	waiting := make(chan func() error)
	failed := make(chan error, streams)
	var workers sync.WaitGroup
	for i := 0; i < streams; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			var first error
			for task := range waiting {
				if err := task(); err != nil && first == nil {
					first = err
				}
			}
			failed <- first
		}()
	}
	for _, task := range tasks {
		waiting <- task
	}
	close(waiting)
	workers.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
