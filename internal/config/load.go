package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Sources are the places that Load reads settings from. A test can pass its own.
type Sources struct {
	Flags      map[string]string // by Key.Flag; only flags that the user set
	Environ    []string          // "NAME=value", as os.Environ returns it
	HomeDir    string            // for ~ and the default folders
	ConfigFile string            // from --config; empty: hermes-mobile.yaml in the data folder, which may be missing
}

// FromOS returns the sources of the running process, without flags.
func FromOS() Sources {
	home, _ := os.UserHomeDir() // a service may have none; Load reports it if needed
	return Sources{Environ: os.Environ(), HomeDir: home}
}

// The places, in order of increasing precedence.
type place int

const (
	byDefault place = iota
	inDotenv
	inYAML
	inEnviron
	byFlag
)

// value is the value that one place has for a key.
type value struct {
	text  string
	key   string // the key as written in that place
	where string
	place place
	hide  bool // is a secret
}

// loader collects the values of all places, and their errors.
type loader struct {
	src      Sources
	values   [byFlag + 1]map[string]value // by place and Key.Name
	gateways []gatewayEntry
	warnings []Warning
	errs     []error
	// hermesAPI holds the host and port of the API server from Hermes' own .env.
	hermesAPI map[string]string
}

// Load reads and checks all settings. It reports all bad values at once, as joined [BadValue] errors. The
// warnings are valid with and without an error.
func Load(src Sources) (*Config, []Warning, error) {
	l := &loader{src: src, hermesAPI: map[string]string{}}
	for i := range l.values {
		l.values[i] = map[string]value{}
	}
	c := &Config{}

	l.readFlags()
	environ := l.readEnviron()
	c.HermesHome = l.hermesHome()
	if c.HermesHome != "" {
		fi, err := os.Stat(c.HermesHome)
		c.HermesHomeExists = err == nil && fi.IsDir()
		l.readDotenv(filepath.Join(c.HermesHome, ".env"), environ)
	}
	l.readConfigFile()
	c.Data = l.dataFolder()
	if c.Data == "" {
		l.bad(value{key: dataName}, problemf("is not set and there is no home directory: set it to a folder for the database"))
	}

	for _, k := range table {
		v, ok := l.get(k.Name)
		if k.set == nil {
			continue
		}
		if !ok {
			if k.Default == "" {
				continue
			}
			v = value{text: k.Default, key: k.Name, where: "default"}
		}
		if err := k.set(c, v.text); err != nil {
			l.bad(v, err)
		}
	}
	l.findAPI(c)
	l.findAPIKey(c)
	l.checkTokens()
	l.checkAdmin(c)
	l.checkTLS(c)
	l.checkProxyPath(c)
	l.checkStorage(c)
	l.assembleGateways(c)
	l.decideAgent(c)
	l.checkExposure(c)
	if len(l.errs) > 0 {
		return nil, l.warnings, errors.Join(l.errs...)
	}
	c.Warnings = l.warnings
	return c, l.warnings, nil
}

// get returns the effective value for an environment name.
func (l *loader) get(name string) (value, bool) {
	for p := byFlag; p > byDefault; p-- {
		if v, ok := l.values[p][name]; ok {
			return v, true
		}
	}
	return value{place: byDefault}, false
}

// put stores a value. An empty value counts as not set.
func (l *loader) put(name string, v value) {
	k, _ := keyNamed(name)
	v.hide = k.Secret()
	if v.text = strings.TrimSpace(v.text); v.text != "" {
		l.values[v.place][name] = v
	} else {
		delete(l.values[v.place], name) // overrides an earlier line of the same file
	}
}

func (l *loader) readFlags() {
	for _, flag := range slices.Sorted(maps.Keys(l.src.Flags)) {
		i := slices.IndexFunc(table, func(k Key) bool { return flag != "" && k.Flag() == flag })
		if i < 0 {
			l.unknown("--"+quoteOdd(flag), "command line", flag, names(Key.Flag), "--")
			continue
		}
		l.put(table[i].Name, value{text: l.src.Flags[flag], key: table[i].Name, where: "flag --" + flag, place: byFlag})
	}
}

// readEnviron also returns the whole environment, for ${NAME} in .env.
func (l *loader) readEnviron() map[string]string {
	environ := make(map[string]string, len(l.src.Environ))
	for _, e := range l.src.Environ {
		if name, v, ok := strings.Cut(e, "="); ok {
			environ[name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		l.named(name, value{text: environ[name], key: name, where: "environment", place: inEnviron})
	}
	return environ
}

// named stores a value from the environment or from .env if the name is ours. It ignores an unknown name
// with an empty value.
func (l *loader) named(name string, v value) {
	switch k, known := keyNamed(name); {
	case known && k.Kind == Entries:
		l.warn(name, v.where, "%s (%s) is ignored: list gateways in hermes-mobile.yaml instead", name, v.where)
	case known && !(v.place == inDotenv && name == hermesHomeName):
		l.put(name, v)
	case known || v.text == "" || !strings.HasPrefix(name, prefix) || slices.Contains(ignored, name):
	default:
		l.unknown(quoteOdd(name), v.where, name, names(envName), "")
	}
}

func (l *loader) hermesHome() string {
	if v, ok := l.get(hermesHomeName); ok {
		return l.path(v.text)
	}
	if l.src.HomeDir == "" {
		return ""
	}
	return filepath.Join(l.src.HomeDir, ".hermes")
}

// DataFolder returns the data folder from the environment, or the default one. It reads no other setting.
// It is empty if there is no home directory.
func DataFolder(src Sources) string {
	l := &loader{src: src}
	for i := range l.values {
		l.values[i] = map[string]value{}
	}
	l.readEnviron()
	return l.dataFolder()
}

func (l *loader) dataFolder() string {
	if v, ok := l.get(dataName); ok {
		return l.path(v.text)
	}
	for _, e := range l.src.Environ {
		// The XDG specification says to ignore a relative path.
		if dir, ok := strings.CutPrefix(e, "XDG_DATA_HOME="); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, "hermes-mobile")
		}
	}
	if l.src.HomeDir == "" {
		return ""
	}
	return filepath.Join(l.src.HomeDir, ".local", "share", "hermes-mobile")
}

// maxFile is the largest settings file that the loader reads.
const maxFile = 8 << 20

// bad records a value that prevents the start.
func (l *loader) bad(v value, err error) {
	e := &BadValue{Key: v.key, Value: v.text, Where: v.where, Problem: err.Error()}
	if p := (*problem)(nil); v.hide || errors.As(err, &p) && p.hide {
		e.Value = ""
	}
	l.errs = append(l.errs, e)
}

func (l *loader) unreadable(file string, err error) {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	l.errs = append(l.errs, fmt.Errorf("cannot read %s: %w", l.short(file), err))
}

func (l *loader) warn(key, where, format string, args ...any) {
	l.warnings = append(l.warnings, Warning{Key: key, Where: where, Text: fmt.Sprintf(format, args...)})
}

func (l *loader) warnPlain(key, where, format string, args ...any) {
	l.warn(key, where, format, args...)
	l.warnings[len(l.warnings)-1].Plain = true
}

// unknown warns about an unknown name and suggests the nearest of the known ones, with mark in front.
func (l *loader) unknown(shown, where, name string, known []string, mark string) {
	best, likely := nearest(name, known)
	hint := "did you mean " + mark + best + "?"
	if !likely {
		hint = "it is ignored; the nearest known name is " + mark + best
	}
	l.warn(name, where, "unknown setting %s (%s): %s", shown, where, hint)
}

// quoteOdd quotes a name that would make a message unreadable.
func quoteOdd(name string) string {
	for _, r := range name {
		if r <= ' ' || r == '"' || r == '(' || !strconv.IsPrint(r) {
			return strconv.Quote(shorten(name))
		}
	}
	if name == "" {
		return `""`
	}
	return shorten(name)
}

// path expands ~ to the home directory.
func (l *loader) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok && l.src.HomeDir != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		p = l.src.HomeDir + rest
	}
	return filepath.Clean(p)
}

// short abbreviates the home directory as ~ in messages.
func (l *loader) short(p string) string {
	if l.src.HomeDir == "" {
		return p
	}
	if rest, ok := strings.CutPrefix(p, filepath.Clean(l.src.HomeDir)+string(filepath.Separator)); ok {
		return "~/" + filepath.ToSlash(rest)
	}
	return p
}

func (l *loader) at(file string, line int) string {
	return fmt.Sprintf("in %s, line %d", l.short(file), line)
}
