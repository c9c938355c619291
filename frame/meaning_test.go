package frame

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// fieldsOf returns the members of a frame by their names on the wire.
func fieldsOf(f any) map[string]any {
	v := reflect.ValueOf(f).Elem()
	m := map[string]any{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "-" {
			m[name] = value(v.Field(i))
		}
	}
	return m
}

func value(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		if x.IsZero() {
			return nil
		}
		return x.UTC().Format(time.RFC3339Nano)
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if v.Elem().Kind() == reflect.Struct {
			return fieldsOf(v.Interface())
		}
		return value(v.Elem())
	case reflect.Struct:
		return fieldsOf(v.Addr().Interface())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = value(v.Index(i))
		}
		return out
	}
	panic("a frame has a field of kind " + v.Kind().String() + ": teach fieldsOf about it")
}
