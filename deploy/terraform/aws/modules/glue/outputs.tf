output "databases" {
  description = "Names of the databases, for the module `lakeformation`."
  # The names are known before they are made, so that grants can be planned; those who use them wait for the databases.
  value = keys(aws_glue_catalog_database.lake)

  depends_on = [aws_glue_catalog_database.lake]
}
