package frame

import "testing"

// The two frames a busy server handles most: a text that comes in, and a streamed edit that goes
// out.
var (
	benchText    = []byte(`{"t":"text","id":"01JD8Y6J3ZK2V5Q9T7M4C1R0XA","text":"What is on my calendar tomorrow? Please keep it short, I am on the train."}`)
	benchMessage = &Message{ID: "r-184", Text: "Tomorrow you have two meetings: the stand-up at 9:30 and lunch with Anna at noon.", Edit: true, Chunk: Chunk{Total: 1}, ReplyTo: "01JD8Y6J3ZK2V5Q9T7M4C1R0XA"}
)

func BenchmarkDecodeText(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeUp(benchText); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeMessage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		EncodeDown(benchMessage)
	}
}

func BenchmarkDecodeMessage(b *testing.B) {
	b.ReportAllocs()
	raw := EncodeDown(benchMessage)
	for b.Loop() {
		if _, err := DecodeDown(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeAccepted(b *testing.B) {
	b.ReportAllocs()
	f := &Accepted{ID: "01JD8Y6J3ZK2V5Q9T7M4C1R0XA"}
	for b.Loop() {
		EncodeDown(f)
	}
}

func BenchmarkDecodeMedia(b *testing.B) {
	b.ReportAllocs()
	raw := EncodeUp(&Media{ID: "m1", Kind: "image", Parts: 1, Data: make([]byte, 256<<10)})
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := DecodeUp(raw); err != nil {
			b.Fatal(err)
		}
	}
}
