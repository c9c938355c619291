//go:build !linux

package setup

import (
	"context"
	"errors"
)

// There is no systemd here.

func (a *Apart) probe() error                  { return errors.ErrUnsupported }
func (a *Apart) prepare(context.Context) error { return errors.ErrUnsupported }
func (a *Apart) before() (*share, error)       { return nil, errors.ErrUnsupported }
func (a *Apart) share() error                  { return errors.ErrUnsupported }
func (s *share) undo() error                   { return errors.ErrUnsupported }
