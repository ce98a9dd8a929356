package rest_test

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	destinations["bamboohr-employees/employee"] = destination{
		kind: "employee", parameters: map[string]string{"company": "acme"}, secrets: map[string]string{"login": base64.StdEncoding.EncodeToString([]byte("bamboo-key:x"))},
		collection: fakerest.BambooEmployees, update: intent.Fields{"jobTitle": "Director"}, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			b := fakerest.NewBambooHR(fakerest.BambooOptions{}) // numbers are not unique: the harder one
			b.Seed(fakerest.Object{"firstName": "There", "lastName": "Before"})
			return b.Fake
		},
		alter: func(o fakerest.Object) { o["jobTitle"] = "By hand" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"employeeNumber": fmt.Sprintf("E-%03d", n)},
				Expect: intent.Fields{"firstName": "Ada", "lastName": fmt.Sprint("Lovelace ", n), "jobTitle": "Engineer"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields(o)}, o["employeeNumber"] != nil
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // a namesake, with our number if taken
			f.Put(fakerest.BambooEmployees, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprint(1000 + now.Next())
				o := fakerest.Object{"id": id, "firstName": "Ada", "lastName": w.Expect["lastName"], "jobTitle": "Engineer", "employeeNumber": fmt.Sprintf("e-%03d", n), "workEmail": nil, "department": nil, "hireDate": nil, "status": "Active"}
				if taken {
					o["employeeNumber"] = w.Key["employeeNumber"]
				}
				return id, o
			})
		},
	}
	destinations["successfactors-users/user"] = destination{
		kind: "user", parameters: map[string]string{"server": "api4.successfactors.com"}, secrets: map[string]string{"token": "sf-readback"},
		collection: fakerest.SuccessFactorsUsers, lag: 40 * time.Second, native: true,
		open: func() *fakerest.Fake {
			s := fakerest.NewSuccessFactors(fakerest.SuccessFactorsOptions{})
			s.Seed(fakerest.Object{"userId": "before", "username": "before"})
			return s.Fake
		},
		create: func(n int) intent.WriteIntent { // an upsert, mostly of one that is not there
			id := fmt.Sprintf("e-%03d", n)
			return intent.WriteIntent{Write: intent.Upsert, Key: intent.Fields{"userId": id},
				Expect: intent.Fields{"username": id + "@acme", "status": "t", "firstName": "Ada", "lastName": fmt.Sprint("Lovelace ", n), "title": "Engineer", "hireDate": "/Date(1767225600000)/"}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("userId"), Fields: intent.Fields(o)}, o["userId"] != nil
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // a namesake, or one who has our number
			f.Put(fakerest.SuccessFactorsUsers, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprintf("E-%03d", n)
				if taken {
					id = fmt.Sprint(w.Key["userId"])
				}
				return id, fakerest.Object{"userId": id, "username": id + "@other", "status": "t", "firstName": "Ada", "lastName": w.Expect["lastName"], "title": "Engineer", "hireDate": nil}
			})
		},
	}
}
