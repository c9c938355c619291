package store

import (
	"context"
	"database/sql"
	"time"
)

// UseToken records the use of a token by its label.
func (t *Tx) UseToken(label string, at time.Time) error {
	return t.must("token.used", label, at.UnixMilli())
}

// TokenUses returns when each token was last used, by label.
func (s *Store) TokenUses(ctx context.Context) (map[string]time.Time, error) {
	uses := map[string]time.Time{}
	err := s.rows(ctx, "token.uses", func(r *sql.Rows) error {
		var label string
		var at int64
		err := r.Scan(&label, &at)
		uses[label] = time.UnixMilli(at)
		return err
	})
	return uses, err
}
