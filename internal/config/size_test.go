package config

import (
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	for v, want := range map[string]int64{"33554432": 32 << 20, "40MiB": 40 << 20, "40 mib": 40 << 20, "40M": 40 << 20, "40MB": 40_000_000, "1TiB": 1 << 40, "0.5g": 512 << 20, "1024TiB": 1 << 50, "40000000B": 40_000_000} {
		var n int64
		if err := setSize(&n, v, leastData, mostSize); err != nil || n != want {
			t.Errorf("%s is %d, %v; want %d", v, n, err, want)
		}
	}
	for v, want := range map[string]string{"5 apples": "use KiB", "31MiB": "from 32 MiB to 1024 TiB", "ten": "such as 500MiB", "1025TiB": "out of range"} {
		n := int64(7)
		if err := setSize(&n, v, leastData, mostSize); err == nil || !strings.Contains(err.Error(), want) || n != 7 {
			t.Errorf("%s: %v, %d", v, err, n)
		}
	}
}

// A bound in which no file fits is a mistake, and is said to be one together with what it is measured by.
func TestStorageFitsFiles(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"MOBILE_MAX_DATA=32MiB"}, ""},
		{[]string{"MOBILE_MAX_DATA=32MiB", "MOBILE_MAX_MEDIA_BYTES=16777216"}, "MOBILE_MAX_DATA: \"32MiB\" (environment) is less than 4 times MOBILE_MAX_MEDIA_BYTES (16 MiB): use at least 64 MiB"},
		{[]string{"MOBILE_MAX_DEVICE_DATA=7MiB"}, "MOBILE_MAX_DEVICE_DATA: \"7MiB\" (environment) is less than MOBILE_MAX_MEDIA_BYTES (8.0 MiB)"},
		{[]string{"MOBILE_MAX_DEVICE_DATA=8MiB"}, ""},
		{nil, ""},
	} {
		cfg, _, err := Load(Sources{Environ: append([]string{"MOBILE_DATA=" + t.TempDir()}, c.environ...), HomeDir: t.TempDir()})
		if c.want == "" && (err != nil || cfg.OutboxBytes != 64<<20) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.environ, err, c.want)
		}
	}
}
