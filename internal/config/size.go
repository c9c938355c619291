package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"hermes-mobile/internal/quota"
)

var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

// units are the units of a size, in lower case.
var units = map[string]float64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// setSize parses a number of bytes with or without a unit.
func setSize(to *int64, v string, least, most int64) error {
	m := sizeForm.FindStringSubmatch(v)
	if m == nil {
		return problemf("is not a size: use a number of bytes, or a number with a unit such as 500MiB or 10GiB")
	}
	unit, known := units[strings.ToLower(m[2])]
	if !known {
		return problemf("has the unknown unit %q: use KiB, MiB, GiB, or TiB", shorten(m[2]))
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if n *= unit; err != nil || n < float64(least) || n > float64(most) || n >= math.MaxInt64 {
		return problemf("is out of range: use a size from %s to %s", quota.Size(least), quota.Size(most))
	}
	*to = int64(n)
	return nil
}

// Limits of the storage settings.
const (
	leastData   = 32 << 20
	leastOutbox = 1 << 20
	mostSize    = 1 << 50
	// filesInData is the number of files of the largest size that must fit into the data folder.
	filesInData = 4
)

// checkStorage rejects limits that are too small for files of the largest size.
func (l *loader) checkStorage(c *Config) {
	if c.MaxData > 0 && c.MaxData < filesInData*c.MaxMediaBytes {
		v, _ := l.get("MOBILE_MAX_DATA")
		l.bad(v, problemf("is less than %d times MOBILE_MAX_MEDIA_BYTES (%s): use at least %s, or lower MOBILE_MAX_MEDIA_BYTES", filesInData, quota.Size(c.MaxMediaBytes), quota.Size(filesInData*c.MaxMediaBytes)))
	}
	if c.MaxDeviceData > 0 && c.MaxDeviceData < c.MaxMediaBytes {
		v, _ := l.get("MOBILE_MAX_DEVICE_DATA")
		l.bad(v, problemf("is less than MOBILE_MAX_MEDIA_BYTES (%s): raise it, or lower MOBILE_MAX_MEDIA_BYTES", quota.Size(c.MaxMediaBytes)))
	}
}
