package kit

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"time"
)

// A proxy may show the operator another day than the API server has: times in answers are moved ahead, and times in requests back, by whole
// seconds. No length changes: a text keeps its form, and a number keeps its five bytes (2^28 to 2^35 seconds, 1978 to 3058).

// Between these a number is taken for a time; what is outside is some other number.
var firstShifted, lastShifted = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

var timeText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)

const textualDay = "2006-01-02T15:04:05"

// shiftTexts moves each RFC 3339 time, in place. A zone stays as it is, for it does not matter to a length of time.
func shiftTexts(text []byte, by time.Duration) {
	for _, found := range timeText.FindAllIndex(text, -1) {
		day := text[found[0] : found[0]+len(textualDay)]
		if moment, err := time.Parse(textualDay, string(day)); err == nil && moment.Unix() >= firstShifted && moment.Unix() < lastShifted {
			copy(day, moment.Add(by).Format(textualDay))
		}
	}
}

// shiftMessages moves each protobuf Timestamp, in place: behind its length, field 1 with the seconds and field 2 with the nanoseconds, as
// Kubernetes writes both of them always.
func shiftMessages(message []byte, by time.Duration) {
	const head, second = 2, 5 // length and key; the number
	for i := 0; i+head+second+2 <= len(message); i++ {
		end := i + 1 + int(message[i])
		if message[i] < 8 || message[i] > 12 || message[i+1] != 0x08 || message[i+head+second] != 0x10 || end > len(message) {
			continue
		}
		seconds, size := binary.Uvarint(message[i+head:])
		_, rest := binary.Uvarint(message[i+head+second+1 : end])
		if size != second || i+head+second+1+rest != end || int64(seconds) < firstShifted || int64(seconds) >= lastShifted {
			continue
		}
		binary.PutUvarint(message[i+head:], seconds+uint64(int64(by/time.Second)))
		i = end - 1
	}
}

// unit is what has to be there as a whole before times in it can be moved.
type unit int

const (
	wholeBody unit = iota
	lines          // of a watch in JSON
	frames         // of a watch in protobuf: four bytes of length before each
)

// shiftedBody reads whole units with their times moved. Where the body breaks off, what was there of the last one comes before the error.
type shiftedBody struct {
	from   *bufio.Reader
	unit   unit
	binary bool
	by     time.Duration
	ready  []byte
	failed error
}

func newShiftedBody(from io.Reader, header http.Header, watch bool, by time.Duration) *shiftedBody {
	kind, parameters, _ := mime.ParseMediaType(header.Get("Content-Type"))
	s := &shiftedBody{from: bufio.NewReader(from), by: by, binary: kind == "application/vnd.kubernetes.protobuf"}
	switch {
	case s.binary && (watch || parameters["stream"] == "watch"):
		s.unit = frames
	case watch:
		s.unit = lines
	}
	return s
}

func (s *shiftedBody) Read(into []byte) (int, error) {
	for len(s.ready) == 0 && s.failed == nil {
		s.ready, s.failed = s.next()
		shiftTexts(s.ready, s.by)
		if s.binary {
			shiftMessages(s.ready, s.by)
		}
	}
	n := copy(into, s.ready)
	s.ready = s.ready[n:]
	if len(s.ready) > 0 {
		return n, nil
	}
	return n, s.failed
}

func (s *shiftedBody) next() ([]byte, error) {
	switch s.unit {
	case lines:
		return s.from.ReadBytes('\n')
	case frames:
		return readFrame(s.from)
	}
	all, err := io.ReadAll(s.from)
	if err == nil {
		err = io.EOF
	}
	return all, err
}

// readFrame with its head. A frame that is not whole comes with an error that is not io.EOF.
func readFrame(from io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if n, err := io.ReadFull(from, head); err != nil {
		return head[:n], err
	}
	var frame bytes.Buffer
	frame.Write(head)
	if _, err := io.CopyN(&frame, from, int64(binary.BigEndian.Uint32(head))); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame.Bytes(), err
	}
	return frame.Bytes(), nil
}

// shiftHeader moves the Date of an answer.
func shiftHeader(header http.Header, by time.Duration) {
	if moment, err := http.ParseTime(header.Get("Date")); err == nil {
		header.Set("Date", moment.Add(by).UTC().Format(http.TimeFormat))
	}
}

// NextMonth begins then.
func NextMonth(moment time.Time) time.Time {
	year, month, _ := moment.UTC().Date()
	return time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
}

// monthBounds of a text like 2026-11; false where it is none.
func monthBounds(text string) (begin, end time.Time, ok bool) {
	begin, err := time.Parse("2006-01", text)
	return begin, NextMonth(begin), err == nil
}
