package direct

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/quota"
)

// maxFileOut is the largest file that a gateway on this machine can send, as over the relay.
const maxFileOut = 64 << 20

// copied makes a copy of a file for a gateway on this machine, and returns what the model reads of it.
func (t *turn) copyForNeighbor(near Neighbor, f *agent.File) (string, error) {
	path, err := t.agent.Files.LocalCopy(f.Hash, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("the file is no longer there")
	case quota.Why(err) != "":
		return "", errors.New("the server has no room to hand the file over")
	case err != nil:
		t.agent.Log.Error("no copy of a file for the gateway", "input", t.in.N, "error", err)
		return "", errors.New("the file could not be handed over: ask the owner of the server to look at its log")
	case !near.Sees(path):
		return "", errors.New("the gateway does not see the server's files any more. Send the file again")
	}
	return fmt.Sprintf("[The user sent a file: '%s'. It is saved at: %s]", filepath.Base(path), path), nil
}

// named finds the lines by which Hermes names a file on its own machine: its API hands none over (api-facts §4.7).
var mediaLine = regexp.MustCompile(`(?m)^[ \t]*MEDIA:[ \t]*(\S.*?)[ \t]*$`)

// asVoice is how Hermes says that a sound is a voice message.
const asVoice = "[[audio_as_voice]]"

// noted has a note in the place of each file that is named and cannot be had.
func replaceMedia(text string) string {
	if !strings.Contains(text, "MEDIA:") {
		return text
	}
	return mediaLine.ReplaceAllStringFunc(text, func(line string) string {
		return "*The file " + shownName(mediaLine.FindStringSubmatch(line)[1]) + " is on the gateway's machine. Its HTTP API hands no files over.*"
	})
}

func shownName(path string) string {
	return strings.Trim(path[strings.LastIndexAny(path, `/\`)+1:], "`*_[]\"'")
}

// files takes the files that a text names out of it. From a gateway on this machine they are read: each becomes one event, the file or why
// it is not there, so that a turn that is followed again has as many. In the text of any other gateway a note stands in their place.
func (t *turn) files(text string) (string, []agent.Event) {
	near := t.agent.currentNeighbor()
	if near == nil || !strings.Contains(text, "MEDIA:") {
		return replaceMedia(text), nil
	}
	voice := strings.Contains(text, asVoice)
	var events []agent.Event
	text = mediaLine.ReplaceAllStringFunc(text, func(line string) string {
		path := strings.Trim(mediaLine.FindStringSubmatch(line)[1], "`\"'")
		file, err := t.agent.fetch(near, path)
		if err != nil {
			t.agent.Log.Info("a file that the agent named is not sent", "device", t.in.Device, "error", err)
			events = append(events, t.say(agent.NewID(), "*The file "+shownName(path)+" could not be sent: "+why(err)+".*", true))
			return ""
		}
		if voice && file.Kind == "audio" {
			file.Kind = "voice"
		}
		events = append(events, agent.SendFile{ID: agent.NewID(), ReplyTo: t.in.ID, N: t.in.N, File: *file})
		return ""
	})
	text = strings.ReplaceAll(strings.ReplaceAll(text, asVoice, ""), "[[as_document]]", "")
	return strings.TrimSpace(gaps.ReplaceAllString(text, "\n\n")), events
}

// gaps are what lines leave that were taken out.
var gaps = regexp.MustCompile(`\n{3,}`)

var (
	errPrivate = errors.New("files of this folder are not sent")
	errUnseen  = errors.New("it is not there")
)

// why is an error for people. It tells nothing of what is on the machine beyond what the agent named.
func why(err error) string {
	var big *media.Refusal
	switch {
	case errors.Is(err, errPrivate):
		return errPrivate.Error()
	case quota.Why(err) != "":
		return "the server has no room for files right now"
	case errors.As(err, &big) && big.TooBig:
		return fmt.Sprintf("it is larger than %d MiB", maxFileOut>>20)
	}
	return errUnseen.Error()
}

// sounds are the names of files whose containers may hold films, too.
var sounds = []string{".ogg", ".oga", ".opus", ".m4a", ".mp3", ".wav", ".aac", ".flac", ".weba"}

// fetch reads a file that the gateway named into the store.
func (a *Agent) fetch(near Neighbor, path string) (*agent.File, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir() // the gateway's, too: it is of this account
		if err != nil {
			return nil, err
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return nil, errUnseen
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if a.private(path) {
		return nil, errPrivate
	}
	if !near.Sees(path) {
		return nil, errUnseen
	}
	f, info, err := asowner.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFileOut {
		return nil, &media.Refusal{TooBig: true, Reason: "the file is too large"}
	}
	r := bufio.NewReaderSize(f, 4096)
	head, _ := r.Peek(4096) // what cannot be read is found below
	name := media.CleanName(filepath.Base(path))
	out := &agent.File{Name: name}
	kind, ext := "", strings.ToLower(filepath.Ext(name))
	if slices.Contains(sounds, ext) {
		kind = "audio"
	}
	out.Kind, out.Mime = media.Correct(kind, mime.TypeByExtension(ext), head)
	if out.Hash, out.Size, err = a.Files.Put(r, maxFileOut); err != nil {
		return nil, err
	}
	return out, nil
}

// The words of a page or a mail can make an agent name any file. So what it may send is bounded as Hermes bounds it for its messengers, and
// a little more: nothing of the system, nothing hidden, and nothing of Hermes' home but what it makes for people.
var (
	systemFolders = []string{"/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/run", "/var/log", "/var/lib", "/var/run"}
	hermesCaches  = []string{"image_cache", "audio_cache", "video_cache", "document_cache", "browser_screenshots", "workspace"}
)

// private reports whether a file, whose path has no links, is not to be sent.
func (a *Agent) private(path string) bool {
	if rest, inside := relativeTo(a.HermesHome, path); inside {
		parts := strings.Split(rest, "/")
		cache := slices.Contains(hermesCaches, parts[0]) && len(parts) > 1 || parts[0] == "cache" && len(parts) > 2
		return !cache || hidden(rest)
	}
	if _, inside := relativeTo(a.Data, path); inside || hidden(path) {
		return true
	}
	return slices.ContainsFunc(systemFolders, func(dir string) bool {
		_, inside := relativeTo(dir, path)
		return inside
	})
}

// below returns the way from a folder to a file in it.
func relativeTo(dir, path string) (rest string, inside bool) {
	if dir == "" {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func hidden(path string) bool {
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.")
}
