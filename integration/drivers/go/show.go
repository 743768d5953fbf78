// How results and errors are printed.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var ctx = context.Background()

// An execution without rows.
func exec(on *sql.Conn, text string, given ...interface{}) {
	fmt.Println("--", text)
	result, err := on.ExecContext(ctx, text, given...)
	if err != nil {
		fmt.Printf("%T %v\n", err, err)
		return
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	fmt.Println("affected", affected, "id", id)
}

// Every result set of a query; with parameters it is prepared.
func query(on *sql.Conn, text string, given ...interface{}) {
	fmt.Println("--", text)
	rows, err := on.QueryContext(ctx, text, given...)
	if err != nil {
		fmt.Printf("%T %v\n", err, err)
		return
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		columns, _ := rows.ColumnTypes()
		for _, column := range columns {
			nullable, _ := column.Nullable()
			precision, scale, _ := column.DecimalSize()
			fmt.Println(column.Name(), column.DatabaseTypeName(), column.ScanType(), nullable, precision, scale)
		}
		var lines []string
		for rows.Next() {
			cells := make([]interface{}, len(columns))
			into := make([]interface{}, len(columns))
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				fmt.Println("scan", err)
			}
			line := ""
			for _, cell := range cells {
				if bytes, ok := cell.([]byte); ok {
					line += fmt.Sprintf("%q | ", bytes)
				} else {
					line += fmt.Sprintf("%v | ", cell)
				}
			}
			lines = append(lines, line)
		}
		whole := strings.Join(lines, "\n")
		if len(whole) > 20000 {
			whole = fmt.Sprintf("%d rows %x", len(lines), sha256.Sum256([]byte(whole)))
		}
		fmt.Println(whole)
	}
	if err := rows.Err(); err != nil {
		fmt.Printf("%T %v\n", err, err)
	}
}

func open(config *mysql.Config) *sql.Conn {
	database, err := sql.Open("mysql", config.FormatDSN())
	if err == nil {
		var on *sql.Conn
		if on, err = database.Conn(ctx); err == nil {
			return on
		}
	}
	fmt.Printf("%T %v\n", err, err)
	return nil
}
