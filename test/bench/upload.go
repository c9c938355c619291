package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "hermes-mobile/device"
	"hermes-mobile/frame"
)

const (
	uploadBytes = 8 << 20
	uploadMany  = 50

	// uploadCap is what the server holds of all uploads at a time: frames that come, frames that
	// are not applied (64 MiB each, roomBytes of internal/hub), and parts of unfinished files. The
	// rest waits in the sockets. A collector lets the memory grow to twice of what is held.
	uploadCap = 64 + 64 + 8 // MiB
)

// uploads measures what files cost that devices send, by the client library as an app would: one of
// 8 MiB, and fifty of them at once. The gateway fetches each as a stock one does, one after the
// other, and each must have the hash it was sent with.
func uploads(ctx context.Context, s *suite) error {
	for _, n := range []int{1, uploadMany} {
		var idle, more, took, closed []float64
		for range s.repeat {
			r, err := uploadOnce(ctx, s, n)
			if err != nil {
				return fmt.Errorf("%d at once: %w", n, err)
			}
			idle, more, took, closed = append(idle, r.idle), append(more, r.more), append(took, r.took), append(closed, r.closed)
		}
		name := "one file of 8 MiB: "
		goal := verdict("<= 12 MiB", middle(more) <= 12)
		if n > 1 {
			name = fmt.Sprintf("%d files of 8 MiB at once, %d MiB of them held at most: ", n, uploadCap)
			goal = verdict(fmt.Sprintf("<= %d, twice that", 2*uploadCap), middle(more) <= 2*uploadCap)
		}
		s.add("upload", name+"peak RSS over idle, MiB", spread("%.1f", more), goal)
		s.add("upload", name+"RSS idle, MiB", spread("%.1f", idle), "")
		s.add("upload", name+"until the gateway has all, s", spread("%.2f", took), "")
		s.add("upload", name+"connections that the server closed meanwhile", spread("%.0f", closed), "")
	}
	return nil
}

type uploaded struct{ idle, more, took, closed float64 }

func uploadOnce(ctx context.Context, s *suite, n int) (r uploaded, err error) {
	p, err := s.serve(ctx, "upload")
	if err != nil {
		return r, err
	}
	defer p.drop()
	arrived := make(chan string, n+1) // addresses
	g, err := dialGateway(ctx, p.addr, nil, func(urls []string) {
		for _, u := range urls {
			arrived <- u
		}
	})
	if err != nil {
		return r, err
	}
	defer g.end()
	var work sync.WaitGroup
	defer work.Wait()
	talking, stop := context.WithCancel(ctx)
	defer stop()
	var devices []*sdk.Device
	for i := range n {
		d, err := sdk.Open(ctx, sdk.Config{URL: "ws://" + p.addr, Token: appToken, Device: frame.Device{ID: deviceID(i), Name: "Bench"}})
		if err != nil {
			return r, err
		}
		defer func() { _ = d.Close(context.WithoutCancel(ctx)) }()
		work.Go(func() {
			for _, err := range d.Events(talking) { // the loop acknowledges the events, and uses none
				if err != nil {
					return
				}
			}
		})
		if err := d.WaitOnline(ctx); err != nil {
			return r, err
		}
		devices = append(devices, d)
	}
	missing := map[string]bool{}
	for i := range n {
		missing[noise(i).hash()] = true
	}
	time.Sleep(2 * time.Second)
	idle := p.rss()
	if err := p.forgetPeak(); err != nil {
		return r, err
	}

	begin := time.Now()
	wait := s.capture(ctx, p, "upload"+strconv.Itoa(n), time.Second)
	var sent []*sdk.Outgoing
	for i, d := range devices {
		o, err := d.SendFile(ctx, sdk.FileOptions{Name: fmt.Sprintf("file%d.bin", i), ReaderAt: noise(i), Size: uploadBytes})
		if err != nil {
			return r, err
		}
		sent = append(sent, o)
	}
	for i, o := range sent {
		if _, err := o.Wait(ctx); err != nil {
			return r, fmt.Errorf("file %d has no receipt: %w", i, err)
		}
	}
	for got := range n {
		select {
		case address := <-arrived:
			sum, err := fetch(ctx, address)
			if err != nil {
				return r, err
			}
			if !missing[sum] {
				return r, fmt.Errorf("file %d of those that came is none of those that were sent", got+1)
			}
			delete(missing, sum)
		case <-g.done:
			return r, errors.Join(errors.New("the gateway's connection ended"), g.err)
		case <-ctx.Done():
			return r, fmt.Errorf("%d of %d files are not with the gateway: %w", n-got, n, ctx.Err())
		}
	}
	r = uploaded{idle: float64(idle) / (1 << 20), more: float64(p.peak()-idle) / (1 << 20), took: time.Since(begin).Seconds()}
	wait()
	m, err := p.metrics(ctx)
	r.closed = m["hermes_mobile_device_closes_total"]
	return r, err
}

// fetch reads a file that the gateway was told of, and returns the hash of what came.
func fetch(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", bearer())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	h := sha256.New()
	if n, err := io.Copy(h, resp.Body); err != nil || n != uploadBytes || resp.StatusCode != http.StatusOK {
		return "", errors.Join(fmt.Errorf("the gateway gets %d bytes of a file, and %s", n, resp.Status), err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// noise is a file without end that nobody has to hold: the same number is the same file.
type noise uint64

// ReadAt implements io.ReaderAt.
func (n noise) ReadAt(p []byte, off int64) (int, error) {
	var word [8]byte
	for i := 0; i < len(p); {
		at := off + int64(i)
		// SplitMix64 of the place.
		z := (uint64(n)<<32 + uint64(at/8) + 1) * 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], z^z>>31)
		i += copy(p[i:], word[at%8:])
	}
	return len(p), nil
}

func (n noise) hash() string {
	h := sha256.New()
	_, _ = io.Copy(h, io.NewSectionReader(n, 0, uploadBytes)) // neither fails
	return hex.EncodeToString(h.Sum(nil))
}

// forgetPeak makes the kernel note the server's most resident memory anew.
func (p *process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// peak is the most memory that the server had resident since forgetPeak, in bytes.
func (p *process) peak() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
