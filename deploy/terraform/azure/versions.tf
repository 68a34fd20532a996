terraform {
  required_version = ">= 1.9"

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.42"
    }
    azuread = {
      source  = "hashicorp/azuread"
      version = ">= 3.0"
    }
    databricks = {
      source  = "databricks/databricks"
      version = ">= 1.60"
    }
    random = {
      source  = "hashicorp/random"
      version = ">= 3.5"
    }
  }
}
