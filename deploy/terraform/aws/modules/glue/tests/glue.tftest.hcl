mock_provider "aws" {}

variables {
  bucket    = "my-lake"
  databases = ["web", "ios"]
}

run "databases_as_a_sync_would_make_them" {
  assert {
    condition = { for name, one in aws_glue_catalog_database.lake : name => one.location_uri } == {
      for name in ["web", "ios", "__segment_datalake"] : name => "s3://my-lake/segment-data/"
    }
    error_message = "The databases are others, or elsewhere."
  }

  assert {
    condition     = toset(output.databases) == toset(["web", "ios", "__segment_datalake"])
    error_message = "Not all databases are told."
  }
}

run "in_a_folder" {
  variables {
    prefix = "team/lake"
  }

  assert {
    condition     = aws_glue_catalog_database.lake["web"].location_uri == "s3://my-lake/team/lake/segment-data/"
    error_message = "The database is in another place than its tables."
  }
}

run "a_name_that_athena_could_not_query_is_refused" {
  command = plan

  variables {
    databases = ["Web-Prod"]
  }

  expect_failures = [var.databases]
}
