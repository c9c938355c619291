package audit

import (
	"context"
	"testing"
)

func TestFrom(t *testing.T) {
	if got, want := From(context.Background()), (By{Actor: ActorServer}); got != want {
		t.Errorf("a context that says nothing: %v, want %v", got, want)
	}
	owner := By{Actor: ActorSocket, Origin: "uid 1000"}
	ctx := With(context.Background(), owner)
	if got := From(ctx); got != owner {
		t.Errorf("got %v, want %v", got, owner)
	}
	phone := By{Actor: ActorDevice("tel-1"), Origin: "192.0.2.7"}
	if got := From(With(ctx, phone)); got != phone {
		t.Errorf("the inner one: %v, want %v", got, phone)
	}
	if got := From(context.WithoutCancel(ctx)); got != owner {
		t.Errorf("without cancellation: %v, want %v", got, owner)
	}
}

func TestString(t *testing.T) {
	for by, want := range map[By]string{
		{Actor: ActorSocket, Origin: "uid 0"}: "socket (uid 0)",
		{Actor: ActorUser("anna")}:            "user:anna",
	} {
		if got := by.String(); got != want {
			t.Errorf("%#v is %q, want %q", by, got, want)
		}
	}
}
