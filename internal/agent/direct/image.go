package direct

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

const (
	// maxImage keeps a turn with an image below the 10,000,000 bytes of a request, as base64 (api-facts §1.2).
	maxImage = 7 << 20
	// maxImageOut is more than the 5 MB that Hermes puts into a reply (api-facts §4.7).
	maxImageOut = 8 << 20
)

// attached reads the image that a person sent. beside is what the model reads of another file, which a gateway on this machine is handed
// as the path of a copy.
func (t *turn) attachment() (images []gateway.Image, beside string, err error) {
	f := t.in.File
	if f == nil {
		return nil, "", nil
	}
	if f.Kind != "image" || f.Size > maxImage {
		if near := t.agent.currentNeighbor(); near != nil {
			beside, err = t.copyForNeighbor(near, f)
			return nil, beside, err
		}
	}
	if f.Kind != "image" {
		return nil, "", fmt.Errorf("the gateway's HTTP API takes images and no other files")
	}
	if f.Size > maxImage {
		return nil, "", fmt.Errorf("the gateway's HTTP API takes images of up to %d MiB, this one has %d", maxImage>>20, (f.Size+1<<20-1)>>20)
	}
	file, err := t.agent.Files.Open(f.Hash)
	if err != nil {
		return nil, "", fmt.Errorf("the image is no longer there")
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxImage+1))
	if err != nil {
		return nil, "", fmt.Errorf("the image cannot be read")
	}
	return []gateway.Image{{MIMEType: f.Mime, Data: data}}, "", nil
}

// inlined finds the images that Hermes puts into the text of a reply (api-facts §4.7).
var inlined = regexp.MustCompile(`!\[([^\]\n]*)\]\(data:(image/[a-z+.-]+);base64,([A-Za-z0-9+/=]+)\)`)

// images takes the images out of a text and returns them as files. What is none stays in the text.
func (t *turn) images(text string) (string, []agent.Event) {
	if !strings.Contains(text, "](data:image/") {
		return text, nil
	}
	var files []agent.Event
	text = inlined.ReplaceAllStringFunc(text, func(whole string) string {
		part := inlined.FindStringSubmatch(whole)
		data, err := base64.StdEncoding.DecodeString(part[3])
		mime := http.DetectContentType(data) // what the text says of it may be anything
		if err != nil || !strings.HasPrefix(mime, "image/") {
			return whole
		}
		hash, size, err := t.agent.Files.Put(bytes.NewReader(data), maxImageOut)
		if err != nil {
			t.agent.Log.Warn("an image of a reply could not be stored", "error", err)
			if quota.Why(err) != "" {
				return "*An image of this reply could not be stored: the server has no room for files right now.*"
			}
			return "*An image of this reply could not be stored.*"
		}
		files = append(files, agent.SendFile{ID: agent.NewID(), ReplyTo: t.in.ID, N: t.in.N,
			File: agent.File{Kind: "image", Mime: mime, Name: fmt.Sprintf("image-%d.%s", len(files)+1, strings.TrimPrefix(mime, "image/")), Hash: hash, Size: size}})
		return ""
	})
	return strings.TrimSpace(text), files
}
