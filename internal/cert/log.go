package cert

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger forwards certmagic's log to ours. Its progress messages are for debugging only.
func zapLogger(log *slog.Logger) *zap.Logger {
	return zap.New(&core{log: log})
}

type core struct{ log *slog.Logger }

func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// Enabled reports whether a level is logged.
func (c *core) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), level(l)) }

// With returns a core that adds fields to each line.
func (c *core) With(fields []zapcore.Field) zapcore.Core { return &core{c.log.With(attrs(fields)...)} }

// Check adds the core to an entry that it logs.
func (c *core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write logs an entry.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), level(e.Level), e.Message, append(attrs(fields), slog.String("component", "acme"))...)
	return nil
}

// Sync has nothing to do.
func (c *core) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	m := zapcore.NewMapObjectEncoder()
	var out []any
	for _, f := range fields {
		before := len(m.Fields)
		f.AddTo(m)
		if len(m.Fields) > before {
			out = append(out, slog.Any(f.Key, m.Fields[f.Key]))
		}
	}
	return out
}
